import { EventEmitter } from 'node:events'
import type { Hints } from './ports/hints.ts'

/** Hints within one process, each delivered once and at once. */
export function createLocalHints(): Hints {
  const emitter = new EventEmitter().setMaxListeners(0)
  return {
    publish(topic, hint) {
      emitter.emit(`${topic} ${hint.id}`, hint)
      emitter.emit(topic, hint)
    },
    subscribe(topic, id, listener) {
      const name = id === null ? topic : `${topic} ${id}`
      emitter.on(name, listener)
      return () => void emitter.off(name, listener)
    },
    missed: () => () => undefined,
  }
}
