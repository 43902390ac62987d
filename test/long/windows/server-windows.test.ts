import { join } from 'node:path'
import test from 'ava'
import { temporaryDirectory } from '../../helpers/agents/agent.ts'
import {
  faultOf,
  livesThrough,
  reached,
  type ServerPoint,
  toldOf,
  windows,
} from '../../helpers/faults/server-windows.ts'
import { startServerProcess } from '../../helpers/servers/server-process.ts'
import { turns } from '../../helpers/turns.ts'

const turn = turns(4)
for (const point of Object.keys(windows) as ServerPoint[])
  test(`F07 a server that is killed at ${point}: ${toldOf(windows[point])}`, (t) =>
    turn(() =>
      reached(point, async () => {
        const traces = await temporaryDirectory(t)
        const gate = join(traces, 'gate')
        const server = await startServerProcess(t, faultOf(point, gate))
        const crashed = async () => {
          await server.crashed()
          await server.start()
        }
        await livesThrough({ t, server, faulty: server, links: server, crashed, traces, gate }, point)
      }),
    ))
