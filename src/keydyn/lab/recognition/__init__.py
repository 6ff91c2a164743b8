"""Study: who is it, and is it who they say?"""
