"""W-MSE's own domain: a small encoder of images trained without labels, judged by classifiers on its features."""
