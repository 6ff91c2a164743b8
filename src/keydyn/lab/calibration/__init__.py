"""Study: how far can the goodness-of-fit test be trusted?"""
