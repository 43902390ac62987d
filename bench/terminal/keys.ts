import { setTimeout } from 'node:timers/promises'
import { inTurn, median, ratioRow } from '../measure.ts'
import type { Row } from '../row.ts'
import { type Pair, prompt } from './pair.ts'
import type { Screen } from './screen.ts'

const rounds = 9
const keys = 200
/** Milliseconds between keys, from least to greatest, so that no timer of either side gets in step with them. */
const pauses = [5, 15] as const

/** Milliseconds from each key to its echo. */
export async function echoes(screen: Screen, isPaced: boolean): Promise<number[]> {
  const times: number[] = []
  const [least, greatest] = pauses
  for (let key = 0; key < keys; key++) {
    const letter = String.fromCharCode(97 + (key % 26))
    times.push(await screen.answer(letter, letter))
    if (isPaced) await setTimeout(least + (key % (greatest - least)))
  }
  await screen.answer('\x03', prompt)
  return times
}

function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.floor((sorted.length - 1) * share)] ?? Number.NaN
}

/** From a key to its echo: at a fast typist's pace, and each key as soon as the previous one is echoed. */
export async function benchKeys({ ours, bare }: Pair): Promise<Row[]> {
  const rows: Row[] = []
  for (const isPaced of [true, false]) {
    const all: { ours: number[]; bare: number[] } = { ours: [], bare: [] }
    const of = async (screen: Screen, into: number[]) => {
      const times = await echoes(screen, isPaced)
      into.push(...times)
      return median(times)
    }
    const measured = await inTurn(
      rounds,
      () => of(ours, all.ours),
      () => of(bare, all.bare),
    )
    const what = isPaced ? `a key every ${pauses.join(' to ')} ms` : 'one key right after the other'
    const row = ratioRow(`terminal: ${what} to its echo, p50 vs a bare relay`, 'ms', measured, {
      atMost: 1.2,
    })
    const [p99, bareP99] = [quantile(all.ours, 0.99), quantile(all.bare, 0.99)]
    rows.push({ ...row, spread: `${row.spread}, p99 ${p99.toFixed(1)} / ${bareP99.toFixed(1)}` })
  }
  return rows
}
