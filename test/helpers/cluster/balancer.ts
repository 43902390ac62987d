import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { type Ending, temporaryDirectory } from '../agents/agent.ts'
import { onSteadyPort } from '../servers/steady-port.ts'
import { until } from '../until.ts'

export const hasHaproxy = spawnSync('haproxy', ['-v']).error === undefined

/** `first`: everything goes to the first server that is up. */
export type Balance = 'roundrobin' | 'first'

const serverLines = /(?: {2}server rsm\d .*\n)+/g

/** The configuration of examples/cluster with shorter times: a killed server gets no more requests after 400 ms. */
function config(port: number, servers: readonly number[], balance: Balance): string {
  const lines = servers.map((server, at) => `  server rsm${at + 1} 127.0.0.1:${server} send-proxy-v2\n`)
  return readFileSync('examples/cluster/haproxy.cfg', 'utf8')
    .replace('bind :443', `bind 127.0.0.1:${port}`)
    .replaceAll('balance leastconn', `balance ${balance}`)
    .replace('check-ssl verify none inter 2s fastinter 500ms', 'inter 200ms fall 2 rise 1')
    .replaceAll(serverLines, lines.join(''))
}

async function answers(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1')
  const isOpen = await once(socket, 'connect').then(
    () => true,
    () => false,
  )
  socket.destroy()
  return isOpen
}

/** Starts HAProxy in front of these ports; returns its URL. Servers must trust the proxy 127.0.0.1. */
export async function startBalancer(
  t: Ending,
  servers: readonly number[],
  balance: Balance = 'roundrobin',
): Promise<string> {
  const file = join(await temporaryDirectory(t), 'haproxy.cfg')
  return onSteadyPort(async (port) => {
    await writeFile(file, config(port, servers, balance))
    const child = spawn('haproxy', ['-db', '-q', '-f', file], { stdio: ['ignore', 'ignore', 'inherit'] })
    t.teardown(() => child.kill('SIGKILL'))
    await until('HAProxy listens', async () => {
      if (child.exitCode !== null) throw new Error(`HAProxy ended with ${child.exitCode}`)
      return answers(port)
    })
    return `http://127.0.0.1:${port}`
  })
}
