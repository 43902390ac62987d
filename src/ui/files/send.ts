import type { Client } from '../../client/client.ts'
import { upload } from '../../client/upload.ts'
import type { BaseCommand } from '../command/base-command.ts'
import { showTransfer } from './progress.ts'
import type { LocalSource } from './source.ts'

/** Uploads a source, which its owner closes, with a line on the terminal that says how far it is; answers the file's id and size. */
export async function sendSource(
  command: BaseCommand,
  client: Pick<Client, 'files'>,
  source: LocalSource,
  isSecret = false,
): Promise<{ fileId: string; size: number }> {
  const progress = showTransfer(command, `sending ${source.name}`)
  try {
    const { fileId, offset } = await upload(client.files, source, {
      isSecret,
      sent: (bytes) => progress.at(bytes, source.size),
      cut: progress.cut,
    })
    return { fileId, size: offset }
  } finally {
    progress.end()
  }
}
