import { setTimeout as delay } from 'node:timers/promises'
import test from 'ava'
import { browserTest, picture, signIn } from '../../helpers/clients/browser.ts'
import {
  type ConsoleWorld,
  openTerminal,
  say,
  screenHolds,
  screenIs,
  screenOf,
  startConsoleWorld,
} from '../../helpers/clients/console.ts'
import { startCutLink } from '../../helpers/faults/cut-link.ts'
import { adminLogin } from '../../helpers/servers/server.ts'

const lines = 6000
const linesAtOnce = 100

let world: ConsoleWorld
browserTest.before(async () => {
  world = await startConsoleWorld()
})
test.after.always(() => world?.end())

const numbersOf = (screen: string) =>
  [...screen.matchAll(/^line-(\d+) /gm)].map(([, number]) => Number(number))

browserTest(
  'F20 a browser without network for 20 s during output misses no line and shows none twice',
  async (t) => {
    t.timeout(300_000)
    const link = await startCutLink(t, world.server.url)
    const { page, complaints } = await world.open(t)
    await signIn(page, link.url, adminLogin)
    await openTerminal(page, 'web1')
    // Writes more than may be unacknowledged while the network is down: the shell has to wait for its reader.
    const text = '-'.repeat(120)
    await say(
      page,
      `clear; for at in $(seq 0 ${lines / linesAtOnce - 1}); do seq -f "line-%g ${text}" $((at * ${linesAtOnce} + 1)) $(((at + 1) * ${linesAtOnce})); sleep 0.3; done; echo "all s""aid"`,
    )
    await screenHolds(page, 'line-800 ')
    link.freeze()
    const began = numbersOf(await screenOf(page)).at(-1) ?? 0
    await delay(20_000)
    t.true((numbersOf(await screenOf(page)).at(-1) ?? 0) - began < lines / 2, 'the shell waited')
    link.cut()
    link.thaw()
    await page.getByText('Reattached; nothing was lost').waitFor()
    await picture(page, 'attached-again')
    await screenHolds(page, 'all said')

    let below: number | undefined
    for (let pages = 0; below !== 1 && pages < lines; pages++) {
      const numbers = numbersOf(await screenOf(page))
      const [first = 0] = numbers
      t.deepEqual(
        numbers,
        numbers.map((_number, at) => first + at),
      )
      if (below !== undefined)
        t.true((numbers.at(-1) ?? 0) >= below - 1, `from ${numbers.at(-1)} to ${below}`)
      below = first
      const before = await screenOf(page)
      await page.keyboard.press('Shift+PageUp')
      if (first > 1) await screenIs(page, 'the page above', (screen) => screen !== before)
    }
    t.is(below, 1)
    t.deepEqual(complaints, [])
  },
)
