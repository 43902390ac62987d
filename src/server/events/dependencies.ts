import type { Clock } from '../../disk/clock.ts'
import type { Log } from '../../disk/log.ts'
import type { Fleet } from '../hosts/fleet.ts'
import type { Hints } from '../storage/ports/hints.ts'
import type { Store } from '../storage/ports/store.ts'
import type { Engine } from '../tasks/engine.ts'

export interface EventsDependencies {
  store: Store
  fleet: Fleet
  engine: Pick<Engine, 'summary'>
  hints: Hints
  clock: Clock
  log: Log
}
