import type { Stream } from '../../../core/tasks/task.ts'
import { printable } from '../../../core/text/printable.ts'
import { readFailure, type Sudo } from '../../../ssh/remote-install.ts'
import { InstallFault } from './connection.ts'

export type Say = (stream: Stream, text: string) => void

/** Characters. */
const longestError = 1000
const short = (text: string) => printable(text).slice(0, longestError)

/** Output lines of a host: they become the output of its task, and one of them the reason if it fails. */
export class InstallOutput {
  readonly #say: Say
  readonly #sudo: Sudo
  #isOwnError = false
  reason: string | null = null
  refusal: InstallFault | null = null

  constructor(say: Say, sudo: Sudo) {
    this.#say = say
    this.#sudo = sudo
  }

  heard(stream: Stream, line: string): void {
    if (this.refusal !== null) return
    const failure = stream === 'stderr' ? readFailure(line) : null
    if (failure !== null) {
      const { message, hint } = failure
      const steps = hint === null ? [] : hint.split('\n').map((step) => `     ${step}`)
      this.#say('stderr', `${[`rsm: ${message}`, ...steps].join('\n')}\n`)
      this.reason = short(message)
      this.#isOwnError = true
      return
    }
    this.#say(stream, `${line}\n`)
    if (stream !== 'stderr' || line.trim() === '') return
    // Lines after an rsm error are hints: output only.
    const isOwn = line.startsWith('rsm: ')
    if (isOwn || !this.#isOwnError) this.reason = short(line.trim().replace(/^rsm: /, ''))
    this.#isOwnError ||= isOwn
    if (this.#sudo !== 'none') this.refusal = sudoFault(line)
  }
}

/** Matches sudo's messages under LC_ALL=C. */
function sudoFault(line: string): InstallFault | null {
  if (/^Sorry, try again|incorrect password/.test(line))
    return new InstallFault('sudo rejected the stored password', 1)
  if (/^sudo: .*password is required/.test(line))
    return new InstallFault(
      'sudo requires a password, but none is stored: rsm hosts edit HOST --private-key FILE --password-stdin',
      1,
    )
  return null
}
