import { closeSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test, { type ExecutionContext } from 'ava'
import { CopyWorkspace } from '../../../src/agent/files/copy-workspace.ts'
import { cancelOrder, fileWork, readParts } from '../../../src/agent/files/order.ts'
import { copyFile } from '../../../src/agent/files/transfers.ts'
import type { CopyOrder } from '../../../src/core/protocol/messages.ts'
import { OpenDirectory } from '../../../src/disk/files/open-directory.ts'
import { temporaryDirectory } from '../../helpers/agents/agent.ts'
import { readInLoop, wholeText } from '../../helpers/files/reader.ts'
import { sha256 } from '../../helpers/servers/file-routes.ts'

const lines = 20_000

const desired = { mode: undefined, sourceMode: undefined, uid: null, gid: null }

/** The files that the process of an order gets. */
async function workspaceOf(t: ExecutionContext, taskId: string, copy: CopyOrder) {
  const execution = await temporaryDirectory(t)
  fileWork({ dataDir: execution, url: 'http://127.0.0.1:9' })(execution, { taskId, runAs: null, copy })
  return { execution, workspace: new CopyWorkspace(execution, taskId) }
}

const orderFor = (text: Buffer, path: string): CopyOrder => ({
  file: { fileId: 'f', size: text.length, sha256: sha256(text) },
  path,
  kind: 'FILE',
})

/** Copies a text in this process, as the process of an order does; `received` is called after the last byte. */
async function copyText(
  t: ExecutionContext,
  n: number,
  text: Buffer,
  path: string,
  received: (execution: string) => void = () => {},
): Promise<boolean> {
  const copy = orderFor(text, path)
  const { execution, workspace } = await workspaceOf(t, `copy-${n}`, copy)
  async function* receive() {
    for (let at = 0; at < text.length; at += 16_384) yield text.subarray(at, at + 16_384)
    received(execution)
  }
  try {
    return await copyFile({ copy, desired, workspace, server: { receive }, say: () => {}, bare: [] })
  } finally {
    workspace.sweep()
    workspace.close()
  }
}

test('a reader sees the old or the new file, never a part, during 200 replacements', async (t) => {
  const directory = await temporaryDirectory(t)
  const path = join(directory, 'file')
  writeFileSync(path, wholeText(0, lines))
  const end = readInLoop(t, path, lines)
  for (let n = 1; n <= 200; n += 1) t.true(await copyText(t, n, wholeText(n, lines), path))
  t.regex(await end(), /^reads \d{2,}\n$/)
  t.deepEqual(readdirSync(directory), ['file'])
})

test('a cancel that is on disk wins over a file that is about to be replaced', async (t) => {
  const directory = await temporaryDirectory(t)
  const path = join(directory, 'file')
  writeFileSync(path, 'old')
  await t.throwsAsync(copyText(t, 1, Buffer.from('new'), path, cancelOrder), {
    message: 'it was stopped before it finished',
  })
  t.is(readFileSync(path, 'utf8'), 'old')
  t.deepEqual(readdirSync(directory), ['file'])
})

test('a temporary name taken by another user is neither followed nor removed with our own files', async (t) => {
  const directory = await temporaryDirectory(t)
  const secret = join(directory, 'secret')
  writeFileSync(secret, 'kept')
  const { execution, workspace } = await workspaceOf(
    t,
    'copy',
    orderFor(Buffer.from('text'), join(directory, 'file')),
  )
  const held = OpenDirectory.open(directory)
  t.teardown(() => held.close())
  const first = workspace.create(held)
  closeSync(first.fd)
  held.remove(first.name)
  symlinkSync(secret, join(directory, first.name))
  const second = workspace.create(held)
  closeSync(second.fd)
  t.not(second.name, first.name)
  const noted = readParts(execution).map(({ name }) => name)
  t.deepEqual(noted, [second.name])
  workspace.sweep()
  workspace.close()
  t.deepEqual(readdirSync(directory).sort(), [first.name, 'secret'])
  t.is(readFileSync(secret, 'utf8'), 'kept')
})
