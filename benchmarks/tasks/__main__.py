import sys

from benchmarks.tasks.train import main

sys.exit(main())
