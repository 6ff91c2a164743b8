"""Study: is it still them, keystroke by keystroke?"""
