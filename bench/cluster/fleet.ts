import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { ended } from '../fleet/server.ts'
import type { RegisteredAgent } from '../rest/register.ts'
import type { FleetOrder, FleetState } from './agents.ts'

const program = fileURLToPath(new URL('agents.js', import.meta.url))
/** Agents per process, which has 20,000 descriptors here; an address has 28,000 ports. */
const mostOfAProcess = 17_000

/** Protocol agents in several processes, each with an address of its own. */
export interface LargeFleet {
  readonly state: FleetState
  until(fulfilled: (state: FleetState) => boolean): Promise<void>
  stop(): Promise<void>
}

export function startLargeFleet(
  urls: readonly string[],
  agents: readonly RegisteredAgent[],
  heartbeatInterval: number,
): LargeFleet {
  const children: ChildProcess[] = []
  const states: FleetState[] = []
  let look = () => {}
  for (let from = 0; from < agents.length; from += mostOfAProcess) {
    const child = fork(program)
    const at = children.push(child) - 1
    states.push({ open: 0, frames: 0, twice: 0, beats: 0 })
    child.on('message', (state: FleetState) => {
      states[at] = state
      look()
    })
    child.send({
      urls,
      from: `127.0.0.${at + 2}`,
      agents: agents.slice(from, from + mostOfAProcess),
      heartbeatInterval,
      together: 50,
    } satisfies FleetOrder)
  }
  const sum = (): FleetState =>
    states.reduce((all, one) => ({
      open: all.open + one.open,
      frames: all.frames + one.frames,
      twice: all.twice + one.twice,
      beats: all.beats + one.beats,
    }))
  return {
    get state() {
      return sum()
    },
    until: (fulfilled) =>
      new Promise((resolve) => {
        look = () => {
          if (fulfilled(sum())) resolve()
        }
        look()
      }),
    async stop() {
      for (const child of children) child.kill('SIGKILL')
      await Promise.all(children.map((child) => ended(child)))
    },
  }
}
