import { pipeline } from 'node:stream/promises'
import { boolean } from '@oclif/core/flags'
import { BaseCommand } from '../../cli/command/base-command.ts'
import { needed, optional } from '../../cli/flags/checks.ts'
import { mayReplace } from '../../cli/input/prompt.ts'
import { findTerminalId } from '../../cli/names/id-parts.ts'
import { showBytes } from '../../cli/text/amounts.ts'
import { writeWholeFile } from '../../client/whole-file.ts'
import { RsmError } from '../../core/errors.ts'

const recordingDescription = 'session id, its first or last 6 characters, or latest'

export default class RecordingsExport extends BaseCommand {
  static override summary = 'Write a recorded terminal session to an asciicast file'
  static override description =
    'The file is an asciicast v2, readable by its owner only. Without FILE, or with -, it goes to stdout.'
  static override examples = [
    '$ rsm recordings export SESSION session.cast',
    '$ rsm recordings export latest > session.cast',
  ]
  static override args = {
    session: needed(recordingDescription),
    file: optional('file to write'),
  }
  static override flags = {
    yes: boolean({ char: 'y', description: 'replace an existing file' }),
  }

  async run() {
    const { args, flags } = await this.parse(RecordingsExport)
    const file = args.file === '-' ? undefined : args.file
    if (file === undefined && flags.json)
      throw new RsmError('usage', 'stdout is for the recording', { hint: 'name a file, or leave out --json' })
    const client = await this.client()
    const session = await findTerminalId(client, args.session)
    if (file === undefined) {
      await pipeline(await client.terminals.recording(session), process.stdout, { end: false })
      return undefined
    }
    await mayReplace(file, flags.yes)
    const bytes = await writeWholeFile(file, await client.terminals.recording(session))
    this.notice(`${file}: ${showBytes(bytes)}`)
    return { sessionId: session, file, bytes }
  }
}
