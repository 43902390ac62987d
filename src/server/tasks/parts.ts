import type { KnownHost } from '../../core/scripts/host-variables.ts'
import { isFinal } from '../../core/tasks/task.ts'
import type { Clock } from '../../disk/clock.ts'
import type { Log } from '../../disk/log.ts'
import type { Install } from '../agents/installs/installer.ts'
import type { Carried } from '../files/carried.ts'
import type { LocalFacts } from '../storage/local-facts.ts'
import type { Links, Member, Ownership, Runs } from '../storage/ports/cluster.ts'
import type { Execution, Executions } from '../storage/ports/executions.ts'
import type { Hints } from '../storage/ports/hints.ts'
import type { Keys } from '../storage/ports/keys.ts'
import type { Outputs, Results } from '../storage/ports/outputs.ts'
import type { Views } from '../storage/ports/presence.ts'
import type { Store } from '../storage/ports/store.ts'
import type { WebhookEvents } from '../webhooks/events.ts'

export interface EngineDependencies {
  /** This server among those of its store. */
  member: Member
  store: Store
  executions: Executions
  ownership: Ownership
  links: Links
  hints: Hints
  facts: LocalFacts
  serverRuns: Runs
  outputs: Outputs
  results: Results
  presence: Views
  keys: Keys
  clock: Clock
  log: Log
  install: Install
  carried: Pick<Carried, 'of' | 'passed'>
  /** Bytes of what a host may send. */
  maxFileSize: number
  /** What scripts are told of these hosts; those that are gone are left out. */
  knownHosts: (hostIds: readonly number[]) => Promise<KnownHost[]>
  webhookEvents: Pick<WebhookEvents, 'endOfTask' | 'write'>
}

/** What scheduler and dispatcher are made with. */
export interface EngineParts extends EngineDependencies {
  isStopping(): boolean
  /** Watches work that nobody waits for: its failure goes to the log, its end is waited for by `stop`. */
  inBackground(work: Promise<unknown>, what: string): void
  /** Counts what this server has ended; to be called with what each step answers. */
  ended(changed: readonly Execution[]): void
}

export function createParts(deps: EngineDependencies): EngineParts & { stop(): Promise<void> } {
  let stopping = false
  const background = new Set<Promise<unknown>>()
  return {
    ...deps,
    isStopping: () => stopping,
    inBackground(work, what) {
      const watched = work
        .catch((error: unknown) => {
          if (!stopping) deps.log.warn({ err: error }, `engine: ${what} failed; it is tried again`)
        })
        .finally(() => background.delete(watched))
      background.add(watched)
    },
    ended(changed) {
      for (const execution of changed)
        if (isFinal(execution.status)) deps.facts.publish('resultFinal', execution)
    },
    async stop() {
      stopping = true
      while (background.size > 0) await Promise.all(background)
    },
  }
}
