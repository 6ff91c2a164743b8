"""Study: which settings are recommended?"""
