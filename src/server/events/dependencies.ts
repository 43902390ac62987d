import type { Clock } from '../../disk/clock.ts'
import type { Log } from '../../disk/log.ts'
import type { Engine } from '../engine/engine.ts'
import type { Fleet } from '../services/hosts/fleet.ts'
import type { Hints } from '../storage/ports/hints.ts'
import type { Store } from '../storage/ports/store.ts'

export interface EventsDependencies {
  store: Store
  fleet: Fleet
  engine: Pick<Engine, 'summary'>
  hints: Hints
  clock: Clock
  log: Log
}
