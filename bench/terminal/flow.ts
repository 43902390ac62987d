import { setTimeout } from 'node:timers/promises'
import { inTurn, median, ratioRow } from '../measure.ts'
import type { Row } from '../row.ts'
import { type Pair, prompt } from './pair.ts'
import type { Screen } from './screen.ts'

const rounds = 5
/** Fewer, because what a session shows has to fit into its recording, 256 MiB. */
const catRounds = 3
/** Characters before Ctrl-C: by then all queues between host and client are full. */
const before = 10_000_000
/** Milliseconds. */
const answerBound = 200
const rest = 300

/** Megabytes per second. */
async function rate(screen: Screen, { cat, catBytes }: Pair): Promise<number> {
  const from = screen.shown
  const took = await screen.answer(cat, prompt)
  const came = screen.shown - from
  if (came < catBytes) throw new Error(`${came} of ${catBytes} characters arrived`)
  await setTimeout(rest)
  return catBytes / 1e3 / took
}

/** Milliseconds from Ctrl-C in the middle of a flood to the prompt. */
async function interrupted(screen: Screen, { cat, catBytes }: Pair): Promise<number> {
  const from = screen.shown
  const reached = screen.more(before)
  screen.type(cat)
  await reached
  const took = await screen.answer('\x03', prompt)
  if (screen.shown - from >= catBytes) throw new Error('the flood ended before Ctrl-C')
  await setTimeout(rest)
  return took
}

/** A large file on the terminal. */
export async function benchCat(pair: Pair): Promise<Row[]> {
  const rates = await inTurn(
    catRounds,
    () => rate(pair.ours, pair),
    () => rate(pair.bare, pair),
  )
  return [ratioRow('terminal: cat of 50 MB, vs a bare relay', 'MB/s', rates, { atLeast: 0.5 })]
}

/** The response time of Ctrl-C while a large file is shown. */
export async function benchInterrupt(pair: Pair): Promise<Row[]> {
  const { ours, bare } = pair
  const answers: number[] = []
  const cut = await inTurn(
    rounds,
    async () => {
      const took = await interrupted(ours, pair)
      answers.push(took)
      return took
    },
    () => interrupted(bare, pair),
  )
  const worst = Math.max(...answers)
  return [
    {
      name: 'terminal: Ctrl-C during cat to the prompt, vs a bare relay',
      unit: 'ms',
      ours: cut.ours,
      baseline: cut.baseline,
      ratio: cut.ours / cut.baseline,
      spread: `median ${median(answers).toFixed(0)}, max ${worst.toFixed(0)}`,
      goal: `each ≤ ${answerBound} ms`,
      met: worst <= answerBound,
    },
  ]
}
