import type { Clock } from '../../../../disk/clock.ts'
import type { Log } from '../../../../disk/log.ts'
import type { Hints } from '../../ports/hints.ts'
import type { Outputs, Results } from '../../ports/outputs.ts'
import type { Store } from '../../ports/store.ts'
import type { MemoryCluster } from '../cluster.ts'

export interface ExecutionsDependencies {
  store: Store
  outputs: Outputs
  results: Results
  hints: Hints
  links: Pick<MemoryCluster['links'], 'isCurrentNow'>
  ownership: Pick<MemoryCluster['ownership'], 'holdsNow'>
  clock: Clock
  log: Log
}
