import type { Clock } from '../clock.ts'
import type { Engine } from '../engine/engine.ts'
import type { Log } from '../log.ts'
import type { Hints } from '../seams/hints.ts'
import type { Store } from '../seams/store.ts'
import type { Fleet } from '../services/hosts/fleet.ts'

export interface EventsDependencies {
  store: Store
  fleet: Fleet
  engine: Pick<Engine, 'summary'>
  hints: Hints
  clock: Clock
  log: Log
}
