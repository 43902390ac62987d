import test from 'ava'
import type { WebSocketRoute } from 'playwright-core'
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
import { adminLogin } from '../../helpers/servers/server.ts'
import { until } from '../../helpers/until.ts'

let world: ConsoleWorld
browserTest.serial.before(async () => {
  world = await startConsoleWorld()
})
test.after.always(() => world?.end())

browserTest.serial(
  'a terminal opens in a tab, answers, changes its size, and survives a reload',
  async (t) => {
    const { page, complaints } = await world.open(t)
    await signIn(page, world.server.url, adminLogin)
    await openTerminal(page, 'web1')
    await say(page, 'KEPT=in-the-shell; echo "one-$((1 + 1))"')
    await screenHolds(page, 'one-2')
    await picture(page, 'terminal')

    await page.setViewportSize({ width: 900, height: 600 })
    const size = page.locator('.strip .size')
    await until(
      'the terminal is as small as the page',
      async () => Number.parseInt((await size.textContent()) ?? '', 10) < 120,
    )
    const [cols, rows] = ((await size.textContent()) ?? '').split('×')
    await say(page, 'echo "[$(stty size)]"')
    await screenHolds(page, `[${rows} ${cols}]`)

    await page.reload()
    await screenHolds(page, 'one-2')
    await page.locator('.strip .size').waitFor()
    await say(page, 'echo "still $KEPT"')
    await screenHolds(page, 'still in-the-shell')
    t.is(
      (await screenOf(page)).split('\n').filter((line) => line === 'one-2').length,
      1,
      'no line is shown twice',
    )
    t.deepEqual(complaints, [])
  },
)

browserTest.serial('queries in replayed output are not answered a second time', async (t) => {
  const { page } = await world.open(t)
  await signIn(page, world.server.url, adminLogin)
  await openTerminal(page, 'web1')
  // The script reads the first answer; a second would appear on the command line.
  await say(page, `printf '\\033[c'; IFS= read -rsd c answer; printf 'got %q\\n' "$answer"`)
  await screenHolds(page, 'got $')
  await page.reload()
  await screenHolds(page, 'got $')
  await page.locator('.strip .size').waitFor()
  await say(page, 'echo "af""ter"')
  await screenHolds(page, '\nafter')
  t.notRegex(await screenOf(page), /1;2c/)
})

browserTest.serial(
  'S08 colours, links and wide characters are shown without violating the content security policy',
  async (t) => {
    const { page, complaints } = await world.open(t, { colorScheme: 'dark' })
    await signIn(page, world.server.url, adminLogin)
    await openTerminal(page, 'web1')
    await say(
      page,
      `printf '\\033[38;2;1;200;30mTRUE\\033[4:3;58;2;9;9;9mCURLY\\033[0m 漢字 👩‍👩‍👧 <b>bold</b>\\n'`,
    )
    await screenHolds(page, 'TRUECURLY 漢字 👩‍👩‍👧 <b>bold</b>')
    const colour = await page.evaluate(
      `getComputedStyle([...document.querySelectorAll('.xterm-rows span')].find((one) => one.textContent.startsWith('TRUE'))).color`,
    )
    t.is(colour, 'rgb(1, 200, 30)')
    await picture(page, 'terminal-dark')
    t.deepEqual(complaints, [])
  },
)

browserTest.serial(
  'several terminals have tabs; the keyboard can leave a terminal, switch tabs and end a session',
  async (t) => {
    const { page, complaints } = await world.open(t)
    await signIn(page, world.server.url, adminLogin)
    await openTerminal(page, 'web1')
    await say(page, 'echo "first sh""ell"')
    await screenHolds(page, 'first shell')
    await openTerminal(page, 'web1')
    t.false((await screenOf(page)).includes('first shell'))
    await page.keyboard.press('Control+Shift+KeyL')
    await page.keyboard.press('ArrowLeft')
    await screenHolds(page, 'first shell')
    t.is(await page.evaluate('document.activeElement.getAttribute("role")'), 'tab')
    await page.getByRole('button', { name: 'End session' }).first().press('Enter')
    await page.getByRole('tab').nth(1).waitFor({ state: 'detached' })
    const { content } = await world.server.data('GET', '/api/terminals?status=OPEN&size=100')
    t.is(await page.getByRole('tab').count(), 1)
    t.true(content.length >= 1)
    t.deepEqual(complaints, [])
  },
)

browserTest.serial(
  'text can be copied from the screen, and is pasted unchanged, bracketed if the shell asks for it',
  async (t) => {
    const { page, context } = await world.open(t)
    await context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: world.server.url })
    await signIn(page, world.server.url, adminLogin)
    await openTerminal(page, 'web1')
    await say(page, 'clear; echo "copy""-me"')
    await screenHolds(page, 'copy-me')
    const line = page.locator('.xterm-rows > div', { hasText: /^copy-me/ }).first()
    const { x = 0, y = 0 } = (await line.boundingBox()) ?? {}
    await page.mouse.dblclick(x + 10, y + 5)
    await page.keyboard.press('Control+Shift+KeyC')
    t.is(await page.evaluate('navigator.clipboard.readText()'), 'copy-me')
    await page.evaluate(`navigator.clipboard.writeText('echo pasted-$((2 + 2))\\necho second')`)
    await page.keyboard.press('Control+Shift+KeyV')
    await screenHolds(page, 'echo second')
    t.false((await screenOf(page)).includes('pasted-4'), 'a bracketed paste waits for Enter')
    await page.keyboard.press('Enter')
    await screenHolds(page, 'pasted-4')
  },
)

browserTest.serial('F20 a session taken over by another window says so, and can be taken back', async (t) => {
  const { page, context } = await world.open(t)
  await signIn(page, world.server.url, adminLogin)
  await openTerminal(page, 'web1')
  const kept = await page.evaluate<string>('JSON.stringify(sessionStorage)')
  const second = await context.newPage()
  await second.addInitScript(
    `for (const [key, value] of Object.entries(${kept})) sessionStorage.setItem(key, value)`,
  )
  await second.setViewportSize({ width: 700, height: 500 })
  await second.goto(`${world.server.url}/#/terminals`)
  await screenHolds(second, 'ready')
  await second.locator('.xterm').click()
  await second.locator('.strip .size').waitFor()
  await until(
    'a smaller screen',
    async () =>
      ((await world.server.data('GET', '/api/terminals?status=OPEN&size=1')).content[0]?.cols ?? 999) < 100,
  )
  await page.getByText('opened elsewhere').waitFor()
  await page.getByRole('button', { name: 'Take it back' }).click()
  await second.getByText('opened elsewhere').waitFor()
  await page.locator('.strip .size').waitFor()
  await page.locator('.xterm').click()
  const [cols, rows] = ((await page.locator('.strip .size').textContent()) ?? '').split('×')
  await say(page, 'echo "[$(stty size)]"')
  await screenHolds(page, `[${rows} ${cols}]`)
  await say(page, 'echo "back ag""ain"; exit 3')
  await page.getByText('exit code 3').waitFor()
  await screenHolds(page, 'back again')
  t.is(await page.getByRole('button', { name: 'Open another' }).count(), 1)
  await picture(page, 'terminal-ended')
})

browserTest.serial(
  'F20 input typed during a lost connection is sent after reconnecting, and dropped or refused input is reported',
  async (t) => {
    const { page, complaints } = await world.open(t)
    const [sockets, watchers]: [WebSocketRoute[], string[]] = [[], []]
    let isAway = false
    await page.routeWebSocket(/ws\/terminal/, (near) => {
      if (isAway) {
        void near.close({ code: 1013 })
        return
      }
      sockets.unshift(near)
      near.connectToServer().onMessage((data) => {
        const message = JSON.parse(String(data))
        if (message.type === 'TERMINAL_ATTACHED') message.payload.watchers = watchers
        near.send(JSON.stringify(message))
      })
    })
    const cut = async () => {
      isAway = true
      await sockets[0]?.close({ code: 1013 })
      await page.getByText('Connection lost').waitFor()
    }
    await signIn(page, world.server.url, adminLogin)
    await openTerminal(page, 'web1')
    await cut()
    await page.getByText('is kept and sent later').waitFor()
    await say(page, 'echo "typed aw""ay"')
    isAway = false
    await page.getByText('Reattached; nothing was lost').waitFor()
    await screenHolds(page, '\ntyped away')

    await cut()
    await page.keyboard.insertText('x'.repeat(1_100_000))
    await page.getByText('the input buffer is full').waitFor()
    watchers.push('ann')
    isAway = false
    await page.getByText('are missing; check the line before you continue. ann reads along').waitFor()

    const payload = { code: 413, message: 'input dropped on the host', refId: null }
    for (let at = 0; at < 20; at++)
      sockets[0]?.send(JSON.stringify({ type: 'ERROR', id: `e${at}`, timestamp: '', payload }))
    await page.getByText('input dropped on the host').waitFor()
    await say(page, 'echo "still h""ere"')
    await screenHolds(page, '\nstill here')
    t.false((await screenOf(page)).includes('xxx'))
    t.deepEqual(complaints, [])
  },
)

browserTest.serial('a user sees that an ADMIN is watching; the recording plays and seeks', async (t) => {
  const { server } = world
  const operator = { username: 'otto', password: 'long enough' }
  await server.data('POST', '/api/users', { ...operator, role: 'OPERATOR' })
  const users = await world.open(t)
  await signIn(users.page, server.url, operator)
  await openTerminal(users.page, 'web1')
  const admins = await world.open(t)
  await signIn(admins.page, server.url, adminLogin)
  await admins.page.getByRole('link', { name: 'Recordings' }).click()
  await admins.page.getByRole('row', { name: /otto/ }).getByRole('button', { name: 'Watch' }).click()
  await screenHolds(admins.page, 'ready')
  await users.page.getByText('admin reads along').waitFor()
  await admins.page.keyboard.type('never typed')
  await say(users.page, 'echo "seen by b""oth"; exit')
  await screenHolds(admins.page, 'seen by both')
  await admins.page.getByText('The shell has ended').waitFor()
  t.false((await screenOf(users.page)).includes('never typed'))

  await users.page.getByRole('link', { name: 'Recordings' }).click()
  await users.page.getByRole('link', { name: 'web1' }).first().click()
  await users.page.getByLabel('Position').press('End')
  await screenHolds(users.page, 'seen by both')
  await users.page.getByRole('button', { name: 'Play' }).waitFor()
  await picture(users.page, 'recording')
  await users.page.getByLabel('Position').fill('0')
  await screenIs(users.page, 'the start', (screen) => !screen.includes('seen by both'))
  await users.page.getByLabel('Speed').selectOption('8')
  await users.page.getByRole('button', { name: 'Play' }).click()
  await screenHolds(users.page, 'seen by both')
  t.deepEqual([...users.complaints, ...admins.complaints], [])
})
