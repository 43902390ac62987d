import type { Clock } from '../../clock.ts'
import type { Log } from '../../log.ts'
import type { Hints } from '../../seams/hints.ts'
import type { Outputs } from '../../seams/outputs.ts'
import type { Results } from '../../seams/results.ts'
import type { Store } from '../../seams/store.ts'
import type { MemoryLinks } from '../links.ts'
import type { MemoryOwnership } from '../ownership.ts'

export interface ExecutionsDependencies {
  store: Store
  outputs: Outputs
  results: Results
  hints: Hints
  links: Pick<MemoryLinks, 'isCurrentNow'>
  ownership: Pick<MemoryOwnership, 'holdsNow'>
  clock: Clock
  log: Log
}
