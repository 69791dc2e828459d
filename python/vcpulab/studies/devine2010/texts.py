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
  at 500, ours 6.3 ms at all loads. The notes say what was tried (cold caches, other bottlenecks) and why it was not
  taken.
* **The spread of response times.** Up to 100 users his standard deviation is 0.9 to 2.1 times the mean (Tables 5.4
  and 5.5), ours 0.13 to 0.15: a request waits some 25 times here, and each time in the same queue as all others. A
  wait of 3 s in one request of 50, as for a lost SYN, would do it at 25 users; so would a site that stands still for 2
  of every 5 s, as if for a commit of its file system. The thesis speaks of neither.
* **Claims within his noise.** Which web configuration is best at a load, his own runs do not tell (analysis of
  variance: p = 0.27 to 0.87). The claims that say so are marked.
* **The order in which the guests were created** decides where SEDF leaves them. For MOSS it is inferred that it changed
  once; see the notes.
"""
