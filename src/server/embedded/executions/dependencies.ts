import type { Clock } from '../../clock.ts'
import type { Log } from '../../log.ts'
import type { Hints } from '../../seams/hints.ts'
import type { Outputs, Results } from '../../seams/outputs.ts'
import type { Store } from '../../seams/store.ts'
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
