/** Milliseconds for which a member counts as living after it has joined or renewed, by a monotonic clock. */
export const lease = 10_000
/** Milliseconds between renewals: two may fail before the lease is over. */
export const renewEvery = 3_000

/** One life of a server: joining under the same name again begins another one, with a higher epoch. */
export interface Member {
  readonly name: string
  readonly epoch: number
}

/**
 * Which server owns which running task: the owner carries out the task's plan. A webhook, as `webhook/ID`, is owned like a task. The lease says only when another server may
 * take a task over. Safety rests on `holds`, which knows no clock.
 */
export interface Ownership {
  /** Fences the former life of this name: that one owns nothing any more. */
  join(name: string): Promise<Member>
  /**
   * False when the member is fenced or has left: it must stop, or join anew. A lapsed one renews and keeps what nobody took.
   * Errors: `conflict` where a newer rsm has changed the store, so that this one must stop.
   */
  renew(member: Member): Promise<boolean>
  /**
   * When the running lease of a member was asked for, in monotonic milliseconds; null for one that is fenced, has left, or
   * lives in another process.
   */
  renewedAt(member: Member): number | null
  /** Hands over: all its tasks are free at once. */
  leave(member: Member): Promise<void>
  /** Takes those of the tasks that no living member owns; answers all of them that the member owns now. */
  claim(member: Member, taskIds: readonly string[]): Promise<string[]>
  /** Forgets tasks that have ended, or gives them away; those of others stay theirs. */
  release(member: Member, taskIds: readonly string[]): Promise<void>
  /** Null: nobody that lives. */
  owner(taskId: string): Promise<Member | null>
  /** Whether a step of this member on the task still counts: false for a life that is fenced, or whose task another one took. */
  holds(member: Member, taskId: string): Promise<boolean>
}
