import test from 'ava'
import { browserTest, picture } from '../helpers/clients/browser.ts'
import { type ConsoleWorld, startConsoleWorld } from '../helpers/clients/console.ts'
import { appShows, enableTotp } from '../helpers/clients/totp.ts'

const vera = { username: 'vera', password: 'a password for vera' }
let world: ConsoleWorld
browserTest.serial.before(async () => {
  world = await startConsoleWorld()
})
test.after.always(() => world?.end())

browserTest.serial('a user with TOTP is prompted for a code, and again after a wrong one', async (t) => {
  const { server } = world
  await server.data('POST', '/api/users', { ...vera, role: 'VIEWER' })
  const { token } = await server.data('POST', '/api/auth/login', vera)
  const { secret } = await enableTotp(server, vera.password, token)
  const { page, complaints } = await world.open(t)
  await page.goto(server.url)
  const code = page.getByLabel('Code from the authenticator app')
  t.is(await code.count(), 0)
  await page.getByLabel('User').fill(vera.username)
  await page.getByLabel('Password').fill(vera.password)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.locator('input[name=code]:focus').waitFor()
  await picture(page, 'sign-in-code')
  await code.fill('000000')
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByText('The code is wrong').waitFor()
  await code.fill(appShows(secret))
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('button', { name: 'Sign out' }).waitFor()
  t.deepEqual(complaints, [])
})
