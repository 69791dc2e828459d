"""What stands in the way of agreement."""

LIMITS = """
* **Noise.** His runs of one web cell differ by 28 % of the mean. Five of them give a mean to within ± 25 % or so, more than the
  configurations differ. So no order of web configurations can agree better than by chance, and Kendall's tau over them
  measures his noise. What can agree is the level, the effect of the load, and Credit against SEDF.
* **Blocked and waiting.** Waiting is a residual, and the time missing from blocked is in it; see the notes, D-I1.
* **Dom0's CPU for a request** is fitted, and larger than network packets can explain; see the notes.
* **Throughput that falls with the load.** In the model a page takes more CPU with more processes, because their caches are cold;
  that explains part of the growth of Apache's CPU per request (4 to 7 ms), and little of the fall in throughput.
"""
