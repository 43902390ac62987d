import { EventEmitter } from 'node:events'
import test from 'ava'
import type { WebSocket } from 'ws'
import { keepAlive } from '../../src/net/web-socket.ts'

/** A socket whose pings are recorded, with a clock that the test advances. */
function alive() {
  const told: string[] = []
  const socket = Object.assign(new EventEmitter(), {
    ping: () => void told.push('ping'),
    terminate: () => void told.push('terminate'),
  })
  let tick: (() => void) | null = null
  const after = (_ms: number, run: () => void) => {
    tick = run
    return () => {
      tick = null
    }
  }
  keepAlive(socket as unknown as WebSocket, 15_000, () => void told.push('lost'), after)
  return { told, socket, pass: () => tick?.(), isWaiting: () => tick !== null }
}

test('F11 a connection is terminated after two unanswered pings, and any frame counts as an answer', (t) => {
  const { told, socket, pass } = alive()
  const look = (times: number) => {
    for (let time = 0; time < times; time++) pass()
  }
  for (const kind of ['pong', 'message', 'ping']) {
    look(6)
    socket.emit(kind)
  }
  t.deepEqual(
    told,
    Array.from({ length: 6 }, () => 'ping'),
  )
  look(7)
  t.deepEqual(told.slice(6), ['ping', 'ping', 'lost', 'terminate'])
})

test('a closed connection is not pinged', (t) => {
  const { told, socket, pass, isWaiting } = alive()
  socket.emit('close')
  t.false(isWaiting())
  pass()
  t.deepEqual(told, [])
})
