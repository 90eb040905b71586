"""The training page's parts: `form` asks what to train, `background` trains it, `board` shows the runs there are."""
