from agentic_gym.envs.alfworld.names import display_names


def test_the_first_id_of_a_type_gets_the_highest_number():
    ids = ["cup_bar__plus_00", "cup_bar__minus_00", "pen_bar__plus_00", "cup_bar__plus_01"]
    names = display_names(ids)
    assert [names[i] for i in sorted(ids)] == ["cup 3", "cup 2", "cup 1", "pen 1"]


def test_a_basin_is_not_its_sink():
    names = display_names(["sink_bar__plus_00", "sink_bar__plus_00_bar_sinkbasin"])
    assert sorted(names.values()) == ["sink 1", "sinkbasin 1"]


def test_an_id_without_coordinates_cannot_be_typed():
    assert display_names(["agent1"]) == {"agent1": "agent1 "}
