"""Running a cell over time: teacher-forced, greedy, sampling, beam search, forced scoring."""
