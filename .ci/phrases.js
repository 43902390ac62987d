// Refuses phrases that native readers have to translate, in comments, texts, titles of tests and documents.
// Prints `file:line: "phrase": advice` for each and exits 1; with arguments it reads these files or folders only.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

/** Phrase, as a pattern in which a space also matches a line break, and what to write in its place. */
const phrases = [
  ['(?<!there )(?:is|are|was|were) none', 'invalid X, unknown X, X not found'],
  [
    '(?<!there )(?:is|are|was|were) no (?!longer|later|more|less|fewer|different|better|worse|link\\b)[a-z]\\w*',
    'is not a X, has no X',
  ],
  ['names? no', 'does not name a X, unknown X'],
  [
    '(?<![\'"`=^+]|as |user |owner |root, |shell of |/ |file: )(?:nobody|anybody)(?![\'"`:])',
    'name the program or request; of people: no one',
  ],
  ['somebody|whoever', 'name the program or request; of people: someone, the user'],
  ['anew', 'again'],
  ['for good(?! reason)', 'forever, permanently'],
  ['can not(?! only)', 'cannot'],
  ['(?:go|goes|went|gone) on', 'continue'],
  ['by (?:itself|themselves)', 'automatically; of one thing: alone'],
  ['(?:tell|tells|told|telling) of', 'report'],
  ['(?:become|becomes|became) of', 'happens to'],
  ['what (?:waits|waited)', 'pending X'],
  ['so many(?! \\w+ that)', 'N, the number of'],
  ['(?:what is known|is known of|are known of)', 'name it'],
  ['all that', 'all X, everything'],
  ['the former', 'the previous, the old'],
  ['(?:is|are|was|were) to be', 'must be, will be, should be'],
  ['(?:is|are|was|were) not there', 'does not exist, is missing'],
  ['(?:leaves|left) no word', 'name what is missing'],
  ['for nothing', 'needlessly'],
  ['again and again', 'repeatedly'],
  ['(?:is|are|was|were) away', 'is unavailable, is disconnected, is offline'],
  ['(?:is|are|was|were) (?:said|told)', 'is reported, is logged, is notified'],
  ['(?:hear|hears|heard|hearing) of', 'learns of, is notified of'],
  ['(?:lets?|letting) go', 'release'],
  ['not be missed', 'cannot be spared'],
  ['it is we', 'we'],
  ['sees? to', 'handles'],
  ['(?:stand|stands|stood|standing) still', 'stalls, is suspended'],
  ['(?:breaks?|broke|broken|breaking) off', 'is cut off, is aborted'],
  ['(?:is|was|are|were) left of', 'remains of, the rest of'],
  ['(?:came|comes|come) of', 'results from'],
  ['(?:do|does|did|done) without', 'works without, omits'],
  ['(?:get|gets|got|getting) to know', 'learns'],
  ['a clock on the wall', 'local time'],
  ['present password', 'current password'],
  ['takes (?:an? )?(?:viewer|operator|admin|auditor)\\b', 'requires ROLE'],
].map(([pattern, advice]) => ({
  pattern: new RegExp(`\\b(?:${pattern.replaceAll(' ', '\\s+(?:(?://|\\*|#|>)\\s+)?')})(?![\\w-])`, 'gi'),
  advice,
}))

/** First word of a comment or of a test's title that makes a clause of what should be a noun or a verb. */
const clause = 'What|Who|Whose|Whom|Whoever|Whatever|Of|That|Those'
const openings = [
  // The line before is not a comment: a `//` in the middle of a run may begin with any word.
  new RegExp(`(?<!//[^\\n]*\\n\\s*)//\\s+(?:${clause})\\b`, 'g'),
  new RegExp(`/\\*\\*?\\s+(?:\\*\\s+)?(?:${clause})\\b`, 'g'),
  new RegExp(`\\btest(?:\\.\\w+)?\\(\\s*['"\`](?:[AFPS]\\d\\d )*(?:${clause})\\b`, 'gi'),
]

/** Files that quote the phrases. */
const own = new Set(['.ci/phrases.js', 'test/phrases.test.ts'])
const only = process.argv.slice(2)
const scope = only.length
  ? only
  : ['src', 'test', 'bench', 'bin', 'docs', 'examples', 'packaging', '.ci', 'README.md']
const files = execFileSync('git', ['ls-files', '-z', ...scope], { encoding: 'utf8' })
  .split('\0')
  .filter((file) => !own.has(file) && /(?:\.(?:tsx?|js|mjs|md|sh|css|html|json)|\/[^./]+)$/.test(file))

let found = 0
for (const file of files) {
  const text = readFileSync(file, 'utf8')
  const report = (match, advice) => {
    found++
    const line = text.slice(0, match.index).split('\n').length
    console.error(`${file}:${line}: "${match[0].replace(/\s+(?:(?:\/\/|[*#>])\s+)?/g, ' ')}": ${advice}`)
  }
  for (const { pattern, advice } of phrases) for (const match of text.matchAll(pattern)) report(match, advice)
  for (const opening of openings)
    for (const match of text.matchAll(opening)) report(match, 'begin with a noun or a verb')
}
if (found > 0) {
  console.error(`${found} phrases to write in plain English (docs/inside/contributing.md)`)
  process.exit(1)
}
