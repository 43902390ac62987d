import type { Started } from '../executions/execution-record.ts'
import { removeCgroup } from './cgroup-files.ts'

/** Cgroups of ended executions in which something lives on that a script left behind. */
export class CgroupLeftovers {
  readonly #inhabited = new Set<string>()

  /** Removes the cgroups of an execution, now or once their last process has ended. */
  remove(started: Started | null): void {
    const groups = new Set([started?.cgroup ?? [], started?.limited?.groups ?? []].flat())
    for (const group of groups) if (!removeCgroup(group)) this.#inhabited.add(group)
  }

  /** To be called now and then. */
  sweep(): void {
    for (const cgroup of this.#inhabited) if (removeCgroup(cgroup)) this.#inhabited.delete(cgroup)
  }
}
