import { rmSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { ExecuteScript } from '../../core/protocol/messages.ts'
import { writeFileDurably } from '../../disk/durable.ts'

const fileName = 'request.json'

/** What an execution that waits its turn was asked to do. It holds secrets, so it goes as soon as the script starts. */
export async function keepRequest(directory: string, request: ExecuteScript): Promise<void> {
  await writeFileDurably(join(directory, fileName), JSON.stringify(request), 0o600)
}

/** Null where the disk lost it. */
export async function keptRequest(directory: string): Promise<ExecuteScript | null> {
  const text = await readFile(join(directory, fileName), 'utf8').catch(() => null)
  return text === null ? null : (JSON.parse(text) as ExecuteScript)
}

export function dropRequest(directory: string): void {
  rmSync(join(directory, fileName), { force: true })
}
