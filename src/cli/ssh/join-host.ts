import { randomBytes } from 'node:crypto'
import { exitCode, RsmError } from '../../core/errors.ts'
import { type Joined, readInstalled, remoteLine, type Sudo } from '../../core/join/remote-install.ts'
import { sanitizeLine, shellWord } from '../text/sanitize.ts'
import type { Executables } from './executables.ts'
import { CutShort, type SshOptions, SshSession, sshWords } from './session.ts'
import { hostTrouble, sshTrouble, type Trouble } from './trouble.ts'

/** What all hosts of one `rsm hosts join --ssh` have in common. */
export interface JoinSetting extends SshOptions {
  readonly sudo: Sudo
  readonly sudoPassword: string | undefined
  readonly prefix: string | undefined
  /** Settings of an earlier installation change without being asked for. */
  readonly yes: boolean
  readonly executables: Executables
  /** `packaging/install.sh`. */
  readonly script: string
  /** Makes a token for one host; answers its join string. */
  readonly enroll: () => Promise<string>
}

export type JoinResult =
  | { readonly joined: Joined; readonly copied: boolean }
  | { readonly trouble: Trouble; readonly copied: boolean }

/** Milliseconds: for a connection and sudo; a step of the script; a copy of which nothing is taken; and the installation, whose own
 * patience is 60 s for the link after 90 s for the unit. */
const patience = { shell: 60_000, step: 120_000, copy: 60_000, install: 200_000 } as const

const packaged = '/usr/bin/rsm'

/** Says what is done now: `copying 45 %`. */
type Doing = (what: string) => void

class HostJoin {
  readonly #setting: JoinSetting
  readonly #session: SshSession
  readonly #words: readonly string[]
  readonly #mark = randomBytes(12).toString('hex')
  readonly #host: string
  readonly #tell: Doing
  #doing = 'logging in'
  #copied = false
  #isInside = false

  constructor(host: string, setting: JoinSetting, tell: Doing) {
    const { prefix, yes, sudo, script } = setting
    this.#host = host
    this.#setting = setting
    this.#tell = tell
    this.#words = sshWords(host, setting)
    const words = ['rsm', 'agent', 'install', '-', '--json', ...(yes ? ['--yes'] : [])]
    if (prefix !== undefined) words.push('--prefix', shellWord(prefix))
    const line = remoteLine({ sudo, mark: this.#mark, scriptSize: Buffer.byteLength(script), words })
    this.#session = new SshSession([...this.#words, line], this.#mark)
  }

  kill(): void {
    this.#session.kill()
  }

  async run(): Promise<JoinResult> {
    try {
      await this.#become()
      await this.#provide()
      return { joined: await this.#install(), copied: this.#copied }
    } catch (error) {
      return { trouble: this.#troubleOf(error), copied: this.#copied }
    } finally {
      this.#session.kill()
    }
  }

  #do(what: string): void {
    this.#doing = what
    this.#tell(what)
  }

  /** Until the script runs there as whoever may install. */
  async #become(): Promise<void> {
    const { sudoPassword, script } = this.#setting
    this.#do('logging in')
    if (sudoPassword !== undefined) this.#session.write(`${sudoPassword}\n`)
    await this.#session.heard('shell', patience.shell)
    this.#isInside = true
    this.#do('looking')
    this.#session.write(`${this.#mark}\n${script}`)
  }

  /** Until the executable is in its place. */
  async #provide(): Promise<void> {
    const { executables, prefix } = this.#setting
    const [arch = '', there, ofPackage] = await this.#session.heard('host', patience.step)
    const executable = await executables.of(arch)
    const { sha256, size } = executable
    if (there === sha256) this.#session.write(`use ${prefix ?? '/usr/local'}/bin/rsm\n`)
    else if (ofPackage === sha256 && prefix === undefined) this.#session.write(`use ${packaged}\n`)
    else {
      this.#do('copying')
      this.#copied = true
      this.#session.write(`copy ${sha256} ${size}\n`)
      let sent = 0
      await this.#session.send(executable.open(), patience.copy, (bytes) => {
        sent += bytes
        this.#tell(`copying ${Math.floor((sent / size) * 100)} %`)
      })
    }
    await this.#session.heard('ready', patience.step)
  }

  async #install(): Promise<Joined> {
    this.#do('installing')
    this.#session.write(`${await this.#setting.enroll()}\n`)
    this.#session.end()
    const ended = await this.#session.over(patience.install)
    const [, text = ''] = ended.stdout.split(new RegExp(`^${this.#mark} result\\r?\\n`, 'm'))
    const joined = ended.exit === 0 ? parsed(text) : null
    if (joined === null) throw new CutShort(ended)
    return joined
  }

  #troubleOf(error: unknown): Trouble {
    if (error instanceof RsmError)
      return { isUnreachable: false, exit: exitCode(error), error: error.message, hint: error.hint ?? null }
    if (!(error instanceof CutShort)) throw error
    const { ended, silent } = error
    if (silent !== null)
      return {
        isUnreachable: !this.#isInside,
        exit: this.#isInside ? 1 : 255,
        error: `nothing came for ${silent / 1000} s while ${this.#doing}`,
        hint: null,
      }
    const isSsh = ended.exit === 255 || ended.exit === null
    if (isSsh && !this.#isInside) return sshTrouble(ended, this.#words, this.#host)
    return hostTrouble(ended, this.#doing)
  }
}

function parsed(text: string): Joined | null {
  const installed = readInstalled(text)
  if (installed === null) return null
  const { hostId, hostname, agentId } = installed.joined
  return { hostId, hostname: sanitizeLine(hostname), agentId: sanitizeLine(agentId) }
}

/** Installs the agent on a host and waits until it is linked (contract §10). Rejects for defects only. */
export function joinHost(
  host: string,
  setting: JoinSetting,
  tell: Doing,
): { readonly result: Promise<JoinResult>; readonly kill: () => void } {
  const join = new HostJoin(host, setting, tell)
  return { result: join.run(), kill: () => join.kill() }
}
