"""Study: is the person typing still the same, keystroke by keystroke?"""
