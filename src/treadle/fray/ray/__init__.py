"""Jobs on a Ray cluster.

In the words of this package, a *desk* is what a client, or a job that submits more, has for its jobs. It
puts the packed call of each into an *envelope*, with a *ticket* that says which job it is and whose, and
sends it as a Ray task. A *board* is the Ray actor by which a client and its workers hear of each other:
workers report to it each *start* and each *lot* of output, and take from it the *orders* to stop. A *keeper*
is a board that outlives its client, for detached jobs. The *reporter* of a worker speaks with the board; its
*welcome* is what it is told first. A *host* is the Ray actor that keeps the object of an actor, made as its
*opening* says; its *fate* is how often that was lost. A *gate* holds jobs back where the cluster has more
room than the client may use. An *errand* is a second task for a job that waits for a processor; each of the
two has a *lane* of its own, and the first one claims the job.
"""

from treadle.fray.ray.client import RayClient

__all__ = ["RayClient"]
