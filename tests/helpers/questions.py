"""Every page and the question it is headed with. A new page is entered here."""

QUESTIONS = {
    "overview": "What does this space look like, and what would whitening change?",
    "data": "What data is this, and can I bring my own?",
    "anisotropy": "How narrow is the cone, layer by layer?",
    "whitening": "Which whitening, fitted on what, and is the gain real?",
    "layers": "Which layers should be averaged?",
    "dimensions": "How many dimensions are worth keeping?",
    "uniformity": "Are similar sentences close, and all sentences spread out?",
    "compare": "Which model, and does it match what was published?",
    "retrieval": "Which setting ranks best, for which queries, and at which k?",
    "advise": "What should I do with these vectors?",
    "probe": "Does whitening help beyond STS?",
    "training": "What does training do to the space?",
    "corpus": "How far is my corpus, and is it enough to fit on?",
}

ON_DEMAND = ("compare", "training", "corpus")  # which draw nothing before something is asked for
