"""Study: who is typing, and is it the person they claim to be?"""
