import test from 'ava'
import { Player, waitBetween } from '../../../src/cli/recording/playback.ts'
import { playerKeysOf } from '../../../src/cli/terminal/keyboard.ts'
import type { RecordingEvent } from '../../../src/client/services/recording.ts'
import { until } from '../../helpers/until.ts'

const unlimited = Number.POSITIVE_INFINITY
const waits: [from: number, to: number, speed: number, idleLimit: number, milliseconds: number][] = [
  [1, 1.5, 1, unlimited, 500],
  [1, 1.5, 2, unlimited, 250],
  [0, 3600, 1, 2, 2000],
  [0, 3600, 0.5, 2, 4000],
  [2, 1, 1, unlimited, 0],
]
for (const [from, to, speed, idleLimit, milliseconds] of waits)
  test(`from ${from} s to ${to} s takes ${milliseconds} ms at speed ${speed} with pauses up to ${idleLimit} s`, (t) => {
    t.is(waitBetween(from, to, { speed, idleLimit }), milliseconds)
  })

test('automatic answers of a terminal are not keys of the player', (t) => {
  t.deepEqual(playerKeysOf(' .q\u0003x'), ['pause', 'step', 'quit', 'quit'])
  t.deepEqual(playerKeysOf('\u001b[?1;2.q c'), [])
})

async function* eventsOf(times: readonly number[]): AsyncGenerator<RecordingEvent> {
  yield [0, 'r', '80x24']
  for (const time of times) yield [time, 'o', `${time};`]
}

/** Resolves when another recording, started later, has played for `milliseconds`. */
const meanwhile = (milliseconds: number) =>
  new Player({ pace: { speed: 1, idleLimit: unlimited }, async show() {} }).play(
    eventsOf([milliseconds / 1000]),
  )

test('a recording can be paused, stepped through, resumed and quit', async (t) => {
  let shown = ''
  const player = new Player({
    pace: { speed: 1, idleLimit: unlimited },
    async show(output) {
      shown += output
    },
  })
  player.press('pause')
  const over = player.play(eventsOf([0, 5000, 5000, 5000, 9000]))
  await meanwhile(20)
  t.is(shown, '')
  player.press('step')
  player.press('step')
  await until('two steps', () => shown === '0;5000;')
  player.press('pause')
  await until('the rest up to the next wait', () => shown === '0;5000;5000;5000;')
  player.press('quit')
  await over
  t.is(shown, '0;5000;5000;5000;')
})

test('a long recording at great speed ends at once, with its output in order', async (t) => {
  let shown = ''
  const player = new Player({
    pace: { speed: 1e6, idleLimit: unlimited },
    async show(output) {
      shown += output
    },
  })
  await player.play(eventsOf([1, 60, 3600]))
  t.is(shown, '1;60;3600;')
})

test('a pause of months, or without end, is waited for, and can be stepped over', async (t) => {
  const warnings: Error[] = []
  const warned = (warning: Error) => warnings.push(warning)
  process.on('warning', warned)
  t.teardown(() => process.off('warning', warned))
  let shown = ''
  const player = new Player({
    pace: { speed: 1, idleLimit: unlimited },
    async show(output) {
      shown += output
    },
  })
  const over = player.play(eventsOf([0, 1e8, 1e308]))
  await meanwhile(50)
  t.is(shown, '0;')
  player.press('pause')
  player.press('step')
  await until('the step', () => shown === '0;100000000;')
  player.press('pause')
  await meanwhile(50)
  t.is(shown, '0;100000000;')
  player.press('quit')
  await over
  t.deepEqual(warnings, [])
})
