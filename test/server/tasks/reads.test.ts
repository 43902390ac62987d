import test from 'ava'
import { shownTasksContract } from '../../contracts/shown-tasks.ts'
import { fileGround } from '../../helpers/servers/grounds.ts'

shownTasksContract(test, fileGround)
