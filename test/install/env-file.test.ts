import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'ava'
import { readEnvFile, writeEnvFile } from '../../src/install/service.ts'
import { temporaryDirectory } from '../fixtures/rsm.ts'

const values = [
  'plain',
  '',
  'two words',
  `it's "quoted"`,
  'a$b`c\\d',
  'sha256//ab+/=',
  '50%',
  'a#b',
  ' edge ',
]

test('rsm and sh read the same values from a settings file as written', (t) => {
  const settings = new Map(values.map((value, at) => [`RSM_TEST_${at}`, value]))
  const text = writeEnvFile(settings)
  t.deepEqual(readEnvFile(text), settings)
  const file = join(temporaryDirectory(t), 'env')
  writeFileSync(file, text)
  const print = values.map((_, at) => `printf '%s|' "$RSM_TEST_${at}"`).join('; ')
  t.is(
    execFileSync('sh', ['-c', `. ${file}; ${print}`], { encoding: 'utf8' }),
    values.map((v) => `${v}|`).join(''),
  )
})

test('a settings file written by hand may have comments, quotes and blanks', (t) => {
  const text = `# mine\n\nexport A=1\n B = no\nB='two words'\nC="x"\n`
  t.deepEqual(
    [...readEnvFile(text)],
    [
      ['A', '1'],
      ['B', 'two words'],
      ['C', 'x'],
    ],
  )
})

test('a value with a line end is refused', (t) => {
  t.throws(() => writeEnvFile(new Map([['A', 'x\ny']])), {
    code: 'usage',
    message: /A cannot contain a line break/,
  })
})
