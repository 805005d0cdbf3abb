from agentic_gym.envs.alfworld.rooms import UNSEEN_ROOMS, load_rooms, load_types, type_of


def test_every_room_is_made_of_known_types():
    rooms, types = load_rooms(), load_types()
    assert len(rooms) == 120
    assert set(rooms) > UNSEEN_ROOMS
    for room in rooms.values():
        assert {type_of(name) for name in room.receptacles} <= set(types.contains)
        assert set(room.objects) <= types.object_types
        assert all(stand in room.receptacles for stand in room.lamps.values())
        assert {type_of(lamp) for lamp in room.lamps} <= types.toggleable


def test_kinds_of_rooms():
    assert [load_rooms()[n].kind for n in (1, 201, 301, 401)] == ["kitchen", "living room", "bedroom", "bathroom"]


def test_a_basin_is_its_own_type():
    assert type_of("Sink|+00.1|+00.2|-00.3|SinkBasin") == "SinkBasin"
    assert type_of("Mug|+00.1|+00.2|-00.3") == "Mug"
