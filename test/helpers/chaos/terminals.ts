import { setTimeout as delay } from 'node:timers/promises'
import type { ExecutionContext } from 'ava'
import { temporaryDirectory } from '../../fixtures/rsm.ts'
import type { TestServer } from '../servers/server.ts'
import { plainShell } from '../terminals/plain-shell.ts'
import { bashOnPty, rsm } from '../terminals/pty.ts'
import type { Random } from './random.ts'

const exitCode = 9
const lineOf = (at: number) => `line ${at} 漢字 ${String(at).padStart(200, '0')}`

interface Asked {
  readonly hostname: string
  readonly lines: number
  /** Seconds between two lines. */
  readonly pace: number
}

/** Sessions of `rsm terminal` with long output, while everything breaks. */
export class TerminalLoad {
  readonly #t: ExecutionContext
  readonly #server: TestServer
  sessions = 0
  /** Sessions that failed to open because servers, PostgreSQL or the host's link were down. */
  unopened = 0
  /** Number of reconnects of clients. */
  reattached = 0
  /** Differences between the output of a session and that of its host. */
  readonly faults: string[] = []

  constructor(t: ExecutionContext, server: TestServer) {
    this.#t = t
    this.#server = server
  }

  /** Runs one session after the other until `isOver`. */
  async run(random: Random, hostnames: readonly string[], isOver: () => boolean): Promise<void> {
    while (!isOver()) {
      const lines = random.between(50, 600)
      await this.#carry({ hostname: random.pick(hostnames), lines, pace: random.pick([0.02, 0.05, 0.1]) })
    }
  }

  async #carry({ hostname, lines, pace }: Asked): Promise<void> {
    const command = `stty -opost; for i in $(seq ${lines}); do printf "line %d 漢字 %0200d\\n" $i $i; sleep ${pace}; done; exit ${exitCode}`
    const pty = bashOnPty(
      this.#t,
      `${rsm} terminal ${hostname} --shell ${plainShell(this.#t)} -- '${command}'`,
      temporaryDirectory(this.#t),
      { RSM_URL: this.#server.url, RSM_TOKEN: this.#server.token },
    )
    const code = await pty.ended
    const got = pty.shown.replaceAll('\r', '').split('\n')
    const shown = got.filter((line) => line.startsWith('line '))
    const said = got.filter((line) => !line.startsWith('line ')).join(' | ')
    if (shown.length === 0 && code !== exitCode) {
      this.unopened += 1
      this.#t.log(`terminal of ${hostname} was not opened: exit ${code}: ${said}`)
      await delay(1_000)
      return
    }
    this.sessions += 1
    this.reattached += got.filter((line) => line.startsWith('rsm: reattached')).length
    const wrong = shown.findIndex((line, at) => line !== lineOf(at + 1))
    if (wrong !== -1)
      this.faults.push(`terminal of ${hostname}: ${JSON.stringify(shown[wrong])} is line ${wrong + 1}`)
    else if (shown.length !== lines || code !== exitCode)
      this.faults.push(
        `terminal of ${hostname}: ${shown.length} of ${lines} lines, then exit ${code}: ${said}`,
      )
  }
}
