import type { KnownHost } from '../../core/scripts/params.ts'
import { isFinal } from '../../core/tasks/task.ts'
import type { Clock } from '../../disk/clock.ts'
import type { Log } from '../../disk/log.ts'
import type { Install } from '../agents/installs/installer.ts'
import type { Carried } from '../files/transfers.ts'
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
  /** Largest file a host may send, in bytes. */
  maxFileSize: number
  /** Facts about these hosts for script variables; omits deleted hosts. */
  knownHosts: (hostIds: readonly number[]) => Promise<KnownHost[]>
  webhookEvents: Pick<WebhookEvents, 'endOfTask' | 'write'>
}

export interface EngineParts extends EngineDependencies {
  isStopping(): boolean
  /** Runs work in the background: logs its failure; `stop` waits for its end. */
  inBackground(work: Promise<unknown>, what: string): void
  /** Publishes the executions that this server ended; call with the result of each step. */
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
          if (!stopping) deps.log.warn({ err: error }, `engine: ${what} failed; it will be retried`)
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
