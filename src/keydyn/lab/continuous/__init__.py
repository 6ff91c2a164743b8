"""Study: is it still the same person, keystroke by keystroke?"""
