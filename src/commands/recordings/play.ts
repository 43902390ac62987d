import { boolean, string } from '@oclif/core/flags'
import { BaseCommand } from '../../cli/command/base-command.ts'
import { needed } from '../../cli/flags/checks.ts'
import { meansFile } from '../../cli/input/script-file.ts'
import { parseDuration } from '../../cli/input/values.ts'
import { findTerminalId } from '../../cli/names/id-parts.ts'
import type { Pace } from '../../cli/recording/playback.ts'
import { readRecording } from '../../client/services/recording.ts'
import { readLocalFile } from '../../client/whole-file.ts'
import { RsmError } from '../../core/errors.ts'

function readPace(flags: { speed: string; 'idle-limit'?: string | undefined }): Pace {
  const speed = Number(flags.speed)
  if (!(speed > 0 && Number.isFinite(speed)))
    throw new RsmError('usage', `--speed takes a number above 0, not ${flags.speed}`, {
      hint: 'for example: --speed 2 is twice as fast, --speed 0.5 half as fast',
    })
  const limit = flags['idle-limit']
  return { speed, idleLimit: limit === undefined ? Number.POSITIVE_INFINITY : parseDuration(limit) }
}

export default class RecordingsPlay extends BaseCommand {
  static override summary = 'Play a recorded terminal session, or a .cast file'
  static override description =
    `Space pauses and resumes, . steps while paused, q quits. If stdout is not a terminal, all output is printed at
once, as text without control sequences.`
  static override examples = [
    '$ rsm recordings play SESSION --speed 2 --idle-limit 1s',
    '$ rsm recordings play latest',
    '$ rsm recordings play ./session.cast',
  ]
  static override args = {
    recording: needed('session id, latest, or a file (with a / or ending in .cast)'),
  }
  static override flags = {
    speed: string({ default: '1', helpValue: 'N', description: 'playback speed' }),
    'idle-limit': string({ helpValue: 'TIME', description: 'shorten longer pauses to this' }),
    raw: boolean({ description: 'keep control sequences if stdout is not a terminal' }),
  }

  async run() {
    const { args, flags } = await this.parse(RecordingsPlay)
    if (flags.json)
      throw new RsmError('usage', 'a recording is played, not printed as JSON', {
        hint: 'rsm recordings export SESSION prints it',
      })
    const pace = readPace(flags)
    const name = args.recording
    const isFile = name.endsWith('.cast') || meansFile(name)
    const bytes = isFile ? readLocalFile(name) : await this.#ofServer(name)
    const recording = await readRecording(bytes, name)
    const { playOnTerminal, printAtOnce } = await import('../../cli/recording/playback.ts')
    if (process.stdout.isTTY) await playOnTerminal(recording, pace, (text) => this.notice(text))
    else await printAtOnce(recording, flags.raw)
  }

  async #ofServer(sessionId: string): Promise<AsyncIterable<Buffer>> {
    const client = await this.client()
    return client.terminals.recording(await findTerminalId(client, sessionId))
  }
}
