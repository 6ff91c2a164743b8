"""Study: are the parameters of known models recovered?"""
