"""Speed measured side by side with what people use today: `python -m benchmarks`.

whitelab is imported before torch here as everywhere, because it says how torch's threads wait.
"""

import whitelab  # noqa: F401
