import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'ava'
import { readSecretFile } from '../../../src/cli/input/named-path.ts'
import { temporaryDirectory } from '../../fixtures/rsm.ts'

test('a secret is read without its line end', (t) => {
  const path = join(temporaryDirectory(t), 'token')
  writeFileSync(path, 'secret\n')
  t.is(readSecretFile(path, '--token-file'), 'secret')
})

test('the error for an unreadable file names the file, its option and the reason', (t) => {
  const directory = temporaryDirectory(t)
  const path = join(directory, 'token')
  const says = (message: string) => t.throws(() => readSecretFile(path, '--token-file'), { message })
  says(`cannot read ${path} (--token-file): there is no such file`)
  writeFileSync(path, ' \n')
  says(`${path} (--token-file) is empty`)
  mkdirSync(join(directory, 'sub'))
  t.throws(() => readSecretFile(join(directory, 'sub'), '--token-file'), { message: /it is a directory$/ })
})
