"""What stands in the way of agreement."""

LIMITS = """
* **Noise.** His runs of one web cell differ by 28 % of the mean. Five of them give a mean to within ± 25 % or so,
  more than the configurations differ. So no order of web configurations can agree better than by chance, and
  Kendall's tau over them measures his noise. What can agree is the level, the effect of the load, and Credit against
  SEDF.
* **Blocked and waiting.** Waiting is a residual, and the time missing from blocked is in it; see the notes, D-I1.
* **Dom0's CPU for a request** is fitted, and larger than network packets can explain; see the notes.
* **Throughput that falls with the load.** His Credit rows fall from 112 to 79 req/s from 25 to 500 users, his SEDF
  rows from 101 to 80. In the model Dom0's first vCPU is the bottleneck, whose work for a request does not depend on
  the load: throughput levels off and does not fall. His Apache takes 4 ms of CPU for a request at 25 users and 7 ms
  at 500, ours 5 ms at all loads: something in the guest grows with the number of processes (memory, the directory of
  sessions) that is not modelled.
* **Where SEDF put the guests** is inferred for MOSS and assumed for the web application; see the notes.
"""
