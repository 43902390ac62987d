import { closeSync, existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'ava'
import { CopyWorkspace } from '../../../src/agent/files/copy-workspace.ts'
import { fileWork, readParts } from '../../../src/agent/files/order.ts'
import { OpenDirectory } from '../../../src/disk/files/open-directory.ts'
import { temporaryDirectory } from '../../helpers/agents/agent.ts'

test('a copy records two temporary files of one directory, and not a foreign file whose name it met', async (t) => {
  const execution = await temporaryDirectory(t)
  const file = { fileId: 'f', size: 0, sha256: 'x' }
  const copy = { file, path: '/x', kind: 'FILE' } as const
  fileWork({ dataDir: execution, url: 'http://127.0.0.1:9' })(execution, {
    taskId: 'task',
    runAs: null,
    copy,
  })
  const workspace = new CopyWorkspace(execution, 'task')
  t.teardown(() => workspace.close())
  const target = await temporaryDirectory(t)
  const directory = OpenDirectory.open(target)
  const first = workspace.create(directory)
  closeSync(first.fd)
  const [, head = '', number = ''] = /^(\.rsm-task-)(\d+)\.part$/.exec(first.name) ?? []
  const foreign = `${head}${Number(number) + 1}.part`
  writeFileSync(join(target, foreign), 'foreign')
  const second = workspace.create(directory)
  closeSync(second.fd)
  t.deepEqual(
    readParts(execution).map(({ name }) => name),
    [first.name, second.name],
  )
  workspace.sweep()
  t.deepEqual(
    [first.name, foreign, second.name].map((name) => existsSync(join(target, name))),
    [false, true, false],
  )
})
